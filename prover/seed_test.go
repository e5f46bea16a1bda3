package prover

import _ "highwater/internal/seed" // the same examples each time
