// Package seed holds the properties of a package (pgregory.net/rapid) against the same examples each
// time, so that no run of the tests differs from another. A test file imports it for that alone.
// Others are drawn by RAPID_SEED or -rapid.seed; 0 draws anew each time.
package seed

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // defines the flag
)

func init() {
	if f := flag.Lookup("rapid.seed"); os.Getenv("RAPID_SEED") == "" {
		if err := f.Value.Set("1"); err != nil {
			panic(err)
		}
	}
}
