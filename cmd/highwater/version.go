package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"highwater/tracer/trace"
)

// Set by the Makefile: -ldflags "-X main.version=… -X main.commit=… -X main.dirty=true".
var (
	version = "devel"
	commit  = ""
	dirty   = ""
)

type versionCmd struct{}

// Examples implements exampler.
func (*versionCmd) Examples() string { return "  highwater version\n  highwater version --json\n" }

// versionInfo is the --json output of `highwater version`.
type versionInfo struct {
	Version       string            `json:"version"`
	Commit        string            `json:"commit"` // "" where the build did not say
	Dirty         bool              `json:"dirty"`
	SchemaVersion int               `json:"schema_version"`
	Go            string            `json:"go"`
	Platform      string            `json:"platform"`
	Libraries     map[string]string `json:"libraries"` // module path to version
}

// Run implements the subcommand.
func (*versionCmd) Run(ui *tui) error {
	v := currentVersion()
	if ui.json {
		return ui.printJSON(v)
	}
	fmt.Fprintln(ui.out, versionLine())
	fmt.Fprintf(ui.out, "trace schema %d, %s, %s\n", v.SchemaVersion, v.Go, v.Platform)
	for _, path := range sortedKeys(v.Libraries) {
		fmt.Fprintf(ui.out, "  %s %s\n", path, v.Libraries[path])
	}
	return nil
}

func versionLine() string {
	v := currentVersion()
	line := "highwater " + v.Version
	if v.Commit != "" {
		line += " " + v.Commit
	}
	if v.Dirty {
		line += " (dirty)"
	}
	return line
}

// libraries are the modules whose version changes a result or a file.
var libraries = []string{
	"github.com/consensys/gnark",
	"github.com/consensys/gnark-crypto",
	"github.com/parquet-go/parquet-go",
	"go.opentelemetry.io/otel/sdk",
}

func currentVersion() versionInfo {
	v := versionInfo{
		Version: version, Commit: commit, Dirty: dirty == "true", SchemaVersion: trace.SchemaVersion,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Libraries: map[string]string{},
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" && v.Commit == "" {
			v.Commit = s.Value
		}
		if s.Key == "vcs.modified" && s.Value == "true" {
			v.Dirty = true
		}
	}
	for _, m := range build.Deps {
		for _, want := range libraries {
			if m.Path == want {
				v.Libraries[want] = m.Version
			}
		}
	}
	return v
}
