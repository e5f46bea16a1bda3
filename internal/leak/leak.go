// Package leak holds the tests of a package to ending the goroutines that they start.
package leak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end. goleak by itself gives them half a second in which
// each must get a CPU: on a machine that others load that can be too short, and a leak stays for ever.
const patience = time.Minute

// Main is for TestMain: it runs the tests, wants every goroutine but its own gone, calls cleanup
// unless that is nil, and exits.
func Main(m *testing.M, cleanup func()) {
	code := m.Run()
	if code == 0 {
		if err := find(patience); err != nil {
			fmt.Fprintln(os.Stderr, "the tests left goroutines behind:", err)
			code = 1
		}
	}
	if cleanup != nil {
		cleanup()
	}
	os.Exit(code)
}

func find(patience time.Duration) error {
	for end := time.Now().Add(patience); ; {
		err := goleak.Find()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
