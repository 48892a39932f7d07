{values[h,i,d,j]->PE[j%16,d%16]}
{values[h,i,d,j]->T[h,floor(d/16),floor(j/16) + j%16 + d%16]}
