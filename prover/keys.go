package prover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"highwater/prover/groth16"
	"highwater/tracer/trace"
)

// keys is a loaded cache file.
type keys struct {
	system *groth16.System
	key    *groth16.Key
}

func (k keys) free() error { return errors.Join(k.key.Free(), k.system.Free()) }

// cacheDir is where keys are kept: Config.CacheDir, or highwater in the user's cache directory.
func cacheDir(cfg Config) (string, error) {
	dir := cfg.CacheDir
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find cache directory: %w: name one", err)
		}
		dir = filepath.Join(user, "highwater")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make cache directory: %w", err)
	}
	return dir, nil
}

// obtainKeys loads the keys from the cache, having them set up first where they are missing or
// damaged.
func (r *run) obtainKeys(ctx context.Context) (keys, error) {
	k, err := r.loadKeys(ctx)
	if err == nil || !r.needsSetup(err) {
		return k, err
	}
	unlock, err := lockSetup(ctx, filepath.Join(r.cacheDir, r.cacheID().FileName()), func() {
		r.report.phase(PhaseSetup, "waiting for another process that sets up the same keys")
	})
	if err != nil {
		return k, err
	}
	defer unlock()
	k, err = r.loadKeys(ctx) // another process may have been first
	if err == nil || !r.needsSetup(err) {
		return k, err
	}
	if err := r.setUp(ctx); err != nil {
		return k, err
	}
	if k, err = r.loadKeys(ctx); err != nil {
		return k, fmt.Errorf("load keys just set up: %w", err)
	}
	return k, nil
}

// needsSetup says whether a failed load is cured by a set-up. A damaged cache is worth a warning,
// once.
func (r *run) needsSetup(err error) bool {
	var damaged *groth16.CacheError
	if errors.As(err, &damaged) {
		warning := fmt.Sprintf("key cache is not used and set up anew: %v", damaged)
		if !r.warned[warning] {
			r.warned[warning] = true
			r.warn(warning)
		}
		return true
	}
	return errors.Is(err, fs.ErrNotExist)
}

func (r *run) cacheID() groth16.CacheID {
	v := r.settings
	return groth16.CacheID{Circuit: v.Text("circuit"), LogSize: int(v.Int("log_size")),
		Seed: v.Uint("seed")}
}

// setUp runs the set-up child and takes its time.
func (r *run) setUp(ctx context.Context) error {
	began := time.Now()
	r.report.phase(PhaseSetup, "")
	child := setupChild{
		command: r.cfg.SetupCommand,
		args: setupArgs{trace: r.rec.Dir(), cache: r.cacheDir, id: r.cacheID(),
			sampleHz: r.settings.Int("sample_hz"),
			onDevice: r.settings.Text("setup") == "device"}.list(),
		report: func(s setupReport) {
			r.report.change(func(p *Progress) {
				p.SetupStage, p.SetupDone, p.SetupTotal = s.Stage, s.Done, s.Total
			})
		},
	}
	err := child.run(ctx)
	r.result.SetupNanos = time.Since(began).Nanoseconds()
	return err
}

// loadKeys reads the cache file into memory.
func (r *run) loadKeys(ctx context.Context) (k keys, err error) {
	if _, err := os.Stat(filepath.Join(r.cacheDir, r.cacheID().FileName())); err != nil {
		return k, fmt.Errorf("load keys: %w", err)
	}
	began := time.Now()
	r.report.phase(PhaseLoad, "")
	err = setupStage(ctx, r.rec, trace.StageKeyLoad, func(ctx context.Context) (err error) {
		k.system, k.key, err = groth16.LoadCache(ctx, r.env, r.cacheDir, r.cacheID())
		return err
	})
	r.result.LoadNanos = time.Since(began).Nanoseconds()
	return k, err
}
