{NT_matmul[i0,i1,k]->PE[k%4,i1%16]}
{NT_matmul[i0,i1,k]->T[floor(i1/16),floor(k/4) + k%4 + i1%16]}
