2 1
{NT_matmul[i0,i1,k]: 0<=i0<1 and 0<=i1<2304 and 0<=k<768}
{NT_matmul[i0,i1,k]->transformer_h_0_ln_11[i0,k]}
{NT_matmul[i0,i1,k]->transformer_h_0_attn_c_attn_weight1[i1,k]}
{NT_matmul[i0,i1,k]->NT_matmul_intermediate[i0,i1]}
