package replay_test

import (
	"flag"
	"os"
)

// Properties are held against the same examples each time, so that no run of the tests differs from
// another. Others are drawn by RAPID_SEED or -rapid.seed; 0 draws anew each time.
func init() {
	if f := flag.Lookup("rapid.seed"); os.Getenv("RAPID_SEED") == "" {
		if err := f.Value.Set("1"); err != nil {
			panic(err)
		}
	}
}
