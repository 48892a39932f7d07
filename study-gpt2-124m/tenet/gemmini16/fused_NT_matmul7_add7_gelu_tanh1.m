{NT_matmul[i0,i1,k]->PE[k%16,i1%16]}
{NT_matmul[i0,i1,k]->T[floor(k/64),floor(i1/16),floor(i0/9),(floor(k/16))%4,i0%9 + k%16 + i1%16]}
