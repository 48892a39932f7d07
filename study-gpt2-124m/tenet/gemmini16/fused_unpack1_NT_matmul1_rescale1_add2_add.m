{NT_matmul[i0,i1,k]->PE[k%2,i1%16]}
{NT_matmul[i0,i1,k]->T[floor(i1/16),floor(k/2) + k%2 + i1%16]}
