2 1
{S[i,j,k]: 0<=i<2 and 0<=j<2 and 0<=k<2}
{S[i,j,k]->A[i,k]}
{S[i,j,k]->B[k,j]}
{S[i,j,k]->C[i,j]}
