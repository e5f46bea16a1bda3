package tracer

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

// UpdateManifest changes the manifest and writes it anew by rename. Changes by several processes
// follow each other.
func (r *Recorder) UpdateManifest(change func(*trace.Manifest)) error {
	if r == nil {
		return nil
	}
	unlock, err := lockFolder(r.dir)
	if err != nil {
		return fmt.Errorf("update manifest: %w", err)
	}
	defer unlock()
	m, err := trace.ReadManifest(r.dir)
	if err != nil {
		return fmt.Errorf("update manifest: %w", err)
	}
	change(m)
	if err := trace.WriteManifest(r.dir, m); err != nil {
		return fmt.Errorf("update manifest: %w", err)
	}
	return nil
}

// lockFolder keeps other processes, and other recorders in this one, from changing the manifest.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// fillManifest adds what the caller cannot know better: the anchor, the machine, the memory limit,
// versions.
func fillManifest(m *trace.Manifest) {
	m.SchemaVersion, m.Origin = trace.SchemaVersion, trace.OriginRecorded
	m.Anchor = anchorNow()
	m.Host = hostFacts(procRoot)
	m.Memory = memoryLimit(limitRoots{proc: procRoot, cgroup: "/sys/fs/cgroup", sys: "/sys"})
	if m.Program == "" {
		m.Program = sourceName("")
	}
	if m.Args == nil {
		m.Args = slices.Clone(os.Args[1:])
	}
	fillVersions(m)
}

// anchorNow reads both clocks as close together as it can.
func anchorNow() trace.Anchor {
	a := trace.Anchor{Kind: trace.AnchorMonotonic}
	narrowest := int64(1 << 62)
	for range 16 {
		before := journal.Monotonic()
		unixNS := time.Now().UnixNano()
		after := journal.Monotonic()
		if after-before < narrowest {
			narrowest, a.MonotonicNS, a.UnixNS = after-before, (before+after)/2, unixNS
		}
	}
	return a
}

func processSource(name string, anchor trace.Anchor) trace.Source {
	return trace.Source{Name: name, Kind: "process", PID: os.Getpid(), Device: trace.None, Anchor: anchor}
}

// recordedModules are the modules whose versions can change a run's figures.
var recordedModules = []string{
	"github.com/consensys/gnark", "github.com/consensys/gnark-crypto",
	"github.com/parquet-go/parquet-go", "go.opentelemetry.io/otel/sdk",
}

func fillVersions(m *trace.Manifest) {
	versions := map[string]string{"go": runtime.Version()}
	for k, v := range m.Versions {
		versions[k] = v
	}
	m.Versions = versions
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}
	for _, d := range info.Deps {
		if slices.Contains(recordedModules, d.Path) {
			versions[d.Path] = d.Version
		}
	}
	if m.Commit != "" {
		return
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			m.Commit = s.Value
		case "vcs.modified":
			m.Dirty = s.Value == "true"
		}
	}
}
