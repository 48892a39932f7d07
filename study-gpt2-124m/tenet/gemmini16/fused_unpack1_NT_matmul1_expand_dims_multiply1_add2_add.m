{group_dot[i0,i1,i2,k]->PE[k%2,i1%16]}
{group_dot[i0,i1,i2,k]->T[floor(i1/16),i2,floor(k/2) + k%2 + i1%16]}
