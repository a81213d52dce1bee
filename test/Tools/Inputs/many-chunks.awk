# Of a certificate with two chunks on its stage makes one with 257, and with as many
# priced tasks, of no weight, as a list may have.
{ gsub(/"budget_bytes": 1210/, "\"budget_bytes\": 1000000000"); sub(/"virtual_stages": 2/, "\"virtual_stages\": 257") }
/^{"slack_seconds"/ { ++chunk }
/^"paths"/ { chunk = 0 }
/^"priced_tasks"/ { printf "\"priced_tasks\": [[[0, 0]"; for (i = 1; i < 262144; ++i) printf ",[0,0]"; print "]]}"; next }
chunk == 1 { first = first $0 "\n"; next }
chunk == 2 && first { for (i = 0; i < 256; ++i) printf "%s", first; first = "" }
{ print }
