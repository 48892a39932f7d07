2 1
{scores[h,i,j,d]: 0<=h<12 and 0<=i<1 and 0<=j<144 and 0<=d<64}
{scores[h,i,j,d]->q[i,h,d]}
{scores[h,i,j,d]->k[h,j,d]}
{scores[h,i,j,d]->s[i,h,j]}
