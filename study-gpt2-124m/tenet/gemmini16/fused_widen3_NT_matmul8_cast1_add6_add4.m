{NT_matmul[i0,i1,k]->PE[k%16,i1%16]}
{NT_matmul[i0,i1,k]->T[floor(i1/128),floor(k/16),(floor(i1/16))%8,i0 + k%16 + i1%16]}
