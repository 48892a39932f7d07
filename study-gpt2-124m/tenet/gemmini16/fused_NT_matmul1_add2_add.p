{PE[row,column]: 0<=row<16 and 0<=column<16}
{PE[row,column]->PE[row - 1,column]; PE[row,column]->PE[row,column - 1]}
8 65536 512 0
