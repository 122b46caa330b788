/* A library without a list of policies. */
int ifl_policies_v0 = 1;
