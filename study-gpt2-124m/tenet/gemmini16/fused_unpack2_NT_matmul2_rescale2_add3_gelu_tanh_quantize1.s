3 1
{NT_matmul[i0,i1,k]: 0<=i0<1 and 0<=i1<3072 and 0<=k<768}
{NT_matmul[i0,i1,k]->lv182[i0,k]}
{NT_matmul[i0,i1,k]->unpack_intermediate[i1,k]}
{NT_matmul[i0,i1,k]->transformer_h_0_mlp_c_fc_q_weight1[i1,k]}
{NT_matmul[i0,i1,k]->NT_matmul_intermediate[i0,i1]}
