// Package models holds the pipelines that ship with the tool under a name: the variants of cuzk, the
// reference system, each with the source of its numbers. A variant is a TOML file that says what it
// does otherwise than the file it is based on.
package models

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"highwater/replay/pipeline"
)

//go:embed cuzk
var files embed.FS

// Named is one named model.
type Named struct {
	Name   string `json:"name"`   // what --model takes
	Base   string `json:"base"`   // the model whose numbers it shares, "" for none
	Doc    string `json:"doc"`    // what blocks on what, in a line
	Source string `json:"source"` // commit or report
}

// header is what a variant's file says besides the model.
type header struct {
	Base string `toml:"base"`
	Doc  string `toml:"doc"`
	// by stage: its time over that of the base
	Scale map[string]float64 `toml:"scale"`
}

// List is every named model but the bases, sorted by name.
func List() ([]Named, error) {
	var out []Named
	err := fs.WalkDir(files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimSuffix(file, path.Ext(file))
		m, h, err := load(name, 0)
		if err != nil {
			return err
		}
		if h.Doc != "" {
			out = append(out, Named{Name: name, Base: h.Base, Doc: h.Doc, Source: m.Source})
		}
		return nil
	})
	return out, err
}

// Load is the model of that name, under its own settings. The error of an unknown name lists those
// that there are.
func Load(name string) (*pipeline.Model, error) {
	m, _, err := load(strings.ToLower(name), 0)
	if err != nil {
		return nil, err
	}
	if m, err = m.Apply(nil); err != nil {
		return nil, fmt.Errorf("model %s: %w", name, err)
	}
	return m, nil
}

const maxBases = 4

func load(name string, depth int) (*pipeline.Model, header, error) {
	var h header
	text, err := files.ReadFile(name + ".toml")
	if err != nil || depth > maxBases {
		return nil, h, unknown(name)
	}
	if _, err := toml.Decode(string(text), &h); err != nil {
		return nil, h, fmt.Errorf("read model %s: %w", name, err)
	}
	m := &pipeline.Model{}
	if h.Base != "" {
		if m, _, err = load(h.Base, depth+1); err != nil {
			return nil, h, err
		}
	}
	if err := over(m, text); err != nil {
		return nil, h, fmt.Errorf("read model %s: %w", name, err)
	}
	m.Name = name
	m.Partitions = scaled(m.Partitions, h.Scale)
	return m, h, nil
}

// scaled is partitions with the times of stages multiplied.
func scaled(partitions []pipeline.Partition, factors map[string]float64) []pipeline.Partition {
	if len(factors) == 0 {
		return partitions
	}
	out := slices.Clone(partitions)
	for i := range out {
		out[i].Pieces = slices.Clone(out[i].Pieces)
		for k := range out[i].Pieces {
			piece := &out[i].Pieces[k]
			if f, ok := factors[piece.Stage]; ok {
				piece.SoloNS *= f
			}
		}
	}
	return out
}

// over reads text over m: what it does not say stays. Stages are matched by name; other lists
// replace those of m.
func over(m *pipeline.Model, text []byte) error {
	base := *m
	m.Stages, m.Jobs, m.Partitions, m.Memory.Resident = nil, nil, nil, nil
	m.Locks, m.Cached, m.Pools, m.Follows, m.Fixed = nil, nil, nil, nil, nil
	meta, err := toml.NewDecoder(bytes.NewReader(text)).Decode(m)
	if err != nil {
		return err
	}
	var errs []error
	for _, key := range meta.Undecoded() {
		name, _, _ := strings.Cut(key.String(), ".")
		if name != "base" && name != "doc" && name != "scale" {
			errs = append(errs, fmt.Errorf("unknown key %q", key.String()))
		}
	}
	m.Stages = merge(base.Stages, m.Stages)
	keep(&m.Jobs, base.Jobs)
	keep(&m.Partitions, base.Partitions)
	keep(&m.Memory.Resident, base.Memory.Resident)
	keep(&m.Locks, base.Locks)
	keep(&m.Cached, base.Cached)
	keep(&m.Pools, base.Pools)
	keep(&m.Follows, base.Follows)
	keep(&m.Fixed, base.Fixed)
	return errors.Join(errs...)
}

// keep puts base in place of a list that a file does not mention; an empty list stays.
func keep[T any](list *[]T, base []T) {
	if *list == nil {
		*list = base
	}
}

// merge puts stages in the places of those of the same name, others behind them.
func merge(base, stages []pipeline.Stage) []pipeline.Stage {
	out := append([]pipeline.Stage(nil), base...)
next:
	for _, s := range stages {
		for i := range out {
			if out[i].Name == s.Name {
				out[i] = s
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

func unknown(name string) error {
	var names []string
	known, err := List()
	if err != nil {
		return err
	}
	for _, n := range known {
		names = append(names, n.Name)
	}
	return fmt.Errorf("unknown model %q: there are %s", name, strings.Join(names, ", "))
}
