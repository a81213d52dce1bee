# Prints a tokenizer.json: sh tokenizer.sh [MERGE]...
#
# Its tokens are the bytes of ASCII that text has, with their own numbers, and
# from 256 on what the merges make, "t h" or "th e".
awk 'BEGIN {
  printf "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": {\"type\": \"NFC\"},\n"
  printf " \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false},\n"
  printf " \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null,\n"
  printf "  \"vocab\": {\"\\u010a\": 10, \"\\u0120\": 32"
  for (byte = 33; byte < 127; ++byte)
    printf ", \"%s%c\": %d", (byte == 34 || byte == 92 ? "\\" : ""), byte, byte
  for (i = 1; i < ARGC; ++i) {
    token = ARGV[i]
    sub(/ /, "", token)
    printf ", \"%s\": %d", token, 255 + i
  }
  printf "},\n  \"merges\": ["
  for (i = 1; i < ARGC; ++i)
    printf "%s\"%s\"", (i > 1 ? ", " : ""), ARGV[i]
  print "]}}"
}' "$@"
