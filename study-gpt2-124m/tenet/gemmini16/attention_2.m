{values[h,i,d,j]->PE[j%16,d%16]}
{values[h,i,d,j]->T[h,floor(i/6),floor(d/16),floor(j/16),i%6 + j%16 + d%16]}
