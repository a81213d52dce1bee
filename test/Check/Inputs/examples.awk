# Prints the ```mlir blocks of the files given: with whole=1 those that have
# functions or modules, with whole=0 the others, each as the body of one.

/```mlir/ { inside = 1; text = ""; place = FILENAME ":" FNR; next }
/```/ && inside {
  inside = 0
  if ((text ~ /func\.func|llvm\.func|(^|\n) *module|gpu\.module/) != whole)
    next
  print (count++ ? "// -----\n" : "") "// Example " place
  print whole ? text : "func.func @example() {\n" text "  return\n}\n"
}
inside { text = text $0 "\n" }
