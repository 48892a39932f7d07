3 1
{NT_matmul[i0,i1,k]: 0<=i0<1 and 0<=i1<50257 and 0<=k<768}
{NT_matmul[i0,i1,k]->transformer_ln_f1[i0,k]}
{NT_matmul[i0,i1,k]->widen_intermediate[i1,k]}
{NT_matmul[i0,i1,k]->transformer_wte_weight1[i1,k]}
{NT_matmul[i0,i1,k]->p_output0[i0,i1]}
