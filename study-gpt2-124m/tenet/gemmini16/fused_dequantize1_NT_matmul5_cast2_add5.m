{NT_matmul[i0,i1,k]->PE[k%16,i1%16]}
{NT_matmul[i0,i1,k]->T[floor(i0/32),floor(i1/16),floor(k/16),i0%32 + k%16 + i1%16]}
