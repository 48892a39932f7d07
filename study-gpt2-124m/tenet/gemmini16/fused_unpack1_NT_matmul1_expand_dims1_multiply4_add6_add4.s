3 1
{group_dot[i0,i1,i2,k]: 0<=i0<128 and 0<=i1<768 and 0<=i2<24 and 0<=k<32}
{group_dot[i0,i1,i2,k]->lv11[i0,32*i2 + k]}
{group_dot[i0,i1,i2,k]->unpack_intermediate[i1,32*i2 + k]}
{group_dot[i0,i1,i2,k]->transformer_h_0_attn_c_proj_q_weight[i1,32*i2 + k]}
{group_dot[i0,i1,i2,k]->group_dot[i0,i1,i2]}
