{scores[h,i,j,d]->PE[d%16,j%16]}
{scores[h,i,j,d]->T[h,floor(j/16),floor(d/16) + d%16 + j%16]}
