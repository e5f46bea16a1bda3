package memory_test

import _ "highwater/internal/seed" // the same examples each time
