{group_dot[i0,i1,i2,k]->PE[k%16,i1%16]}
{group_dot[i0,i1,i2,k]->T[floor(i1/16),floor(i0/32),i2,floor(k/16),i0%32 + k%16 + i1%16]}
