2 1
{values[h,i,d,j]: 0<=h<12 and 0<=i<1 and 0<=d<64 and 0<=j<144}
{values[h,i,d,j]->e[i,h,j]}
{values[h,i,d,j]->v[h,j,d]}
{values[h,i,d,j]->weighted[i,h,d]}
