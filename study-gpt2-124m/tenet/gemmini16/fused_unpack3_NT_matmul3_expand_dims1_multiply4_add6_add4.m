{group_dot[i0,i1,i2,k]->PE[k%16,i1%16]}
{group_dot[i0,i1,i2,k]->T[floor(i0/22),floor(i1/16),i2,floor(k/16),i0%22 + k%16 + i1%16]}
