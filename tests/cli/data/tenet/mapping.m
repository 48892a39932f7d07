{S[i,j,k]->PE[i,j]}
{S[i,j,k]->T[i+j+k]}
