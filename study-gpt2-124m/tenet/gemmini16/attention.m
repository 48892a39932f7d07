{scores[h,i,j,d]->PE[d%16,j%16]}
{scores[h,i,j,d]->T[h,floor(i/5),floor(d/16),floor(j/16),i%5 + d%16 + j%16]}
