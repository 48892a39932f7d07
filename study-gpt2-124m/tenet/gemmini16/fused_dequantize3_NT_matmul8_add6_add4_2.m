{NT_matmul[i0,i1,k]->PE[k%16,i1%16]}
{NT_matmul[i0,i1,k]->T[floor(i0/64),floor(i1/256),floor(k/16),(floor(i1/16))%16,i0%64 + k%16 + i1%16]}
