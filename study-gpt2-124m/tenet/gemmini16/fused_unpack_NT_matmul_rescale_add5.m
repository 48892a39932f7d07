{NT_matmul[i0,i1,k]->PE[k%16,i1%16]}
{NT_matmul[i0,i1,k]->T[floor(i1/16),floor(i0/43),floor(k/16),i0%43 + k%16 + i1%16]}
