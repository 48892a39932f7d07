{NT_matmul[i0,i1,k]->PE[k%8,i1%16]}
{NT_matmul[i0,i1,k]->T[floor(i1/16),floor(k/8) + k%8 + i1%16]}
