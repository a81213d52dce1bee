def NN_GeluOp : NN_PureOp<"gelu", [NN_Vjp]> {
}
def NN_AddOp
    : NN_PureOp<"add", [NN_Vjp]> {
}
