package groth16

import _ "highwater/internal/seed" // the same examples each time
