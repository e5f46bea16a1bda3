package prover

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/consensys/gnark/logger"
	"go.uber.org/goleak"

	"highwater/prover/device"
	"highwater/tracer/setting"
)

// noLibrary is what tests find for a device library, whatever this machine has, unless they say
// otherwise.
const noLibrary = "/no-device-library-in-tests/none.so"

// proveEnv makes the test binary a proving process: its value is a proveJob in JSON.
const proveEnv = "HIGHWATER_TEST_PROVE"

// proveJob is a run in a process of its own.
type proveJob struct {
	Dir, CacheDir string
	Settings      map[string]string
}

// TestMain also serves as set-up child and as the process that is killed.
func TestMain(m *testing.M) {
	logger.Disable() // gnark's, which writes to standard output
	var err error
	switch job := os.Getenv(proveEnv); {
	case len(os.Args) > 1 && os.Args[1] == SetupSubcommand:
		err = SetupMain(context.Background(), os.Args[2:])
	case job != "":
		err = proveHere(job)
	default:
		os.Setenv(device.LibraryEnv, noLibrary)
		goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
			if dir, err := sharedCache(); err == nil {
				os.RemoveAll(dir)
			}
			os.Exit(code)
		}))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// proveHere does what job says and prints the digest of its proofs.
func proveHere(job string) error {
	var j proveJob
	if err := json.Unmarshal([]byte(job), &j); err != nil {
		return err
	}
	v := setting.Defaults()
	for name, text := range j.Settings {
		if err := v.Set(name, text, "set"); err != nil {
			return err
		}
	}
	result, err := Run(context.Background(), Config{Settings: v, Dir: j.Dir, CacheDir: j.CacheDir, Program: "prover-test"})
	if err == nil {
		fmt.Println(result.ProofsSHA256)
	}
	return err
}
