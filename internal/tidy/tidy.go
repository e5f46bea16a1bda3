// Package tidy checks what the compiler does not: which folder may import which, that packages and exported names
// say what they are for, and that no package is called util. Its test runs over the whole module. Lengths are
// only reported: what reads best in its place may be long.
package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is the path that this repository's imports begin with.
const module = "highwater"

// arrows says which folders a folder may import: cmd -> replay -> analyze -> tracer -> internal, and
// cmd -> prover -> tracer. The longest matching folder on the left decides. A folder may import its own
// subfolders and those beside them, but where a row of its own says less.
var arrows = map[string][]string{
	"cmd":      {"cmd", "replay", "analyze", "prover", "tracer", "internal"},
	"replay":   {"replay", "analyze", "tracer", "internal"},
	"analyze":  {"analyze", "tracer", "internal"},
	"prover":   {"prover", "tracer", "internal"},
	"tracer":   {"tracer", "internal"},
	"internal": {"internal"},

	"tracer/trace":   {"tracer/trace", "tracer/journal", "internal"},
	"tracer/journal": {"tracer/journal", "internal"},
	"tracer/probe":   {"tracer/probe", "internal"},
	"tracer/setting": {"tracer/setting", "internal"},
}

// Source is one parsed Go file.
type Source struct {
	Path string // from the module's root, with slashes
	File *ast.File
}

func (s Source) folder() string { return path.Dir(s.Path) }
func (s Source) isTest() bool   { return strings.HasSuffix(s.Path, "_test.go") }

// Tree is every Go file of a module.
type Tree struct {
	Fset    *token.FileSet
	Sources []Source
}

// Load parses every Go file under root but those in hidden folders and in testdata.
func Load(root string) (*Tree, error) {
	t := &Tree{Fset: token.NewFileSet()}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(base, ".go") {
			return nil
		}
		f, err := parser.ParseFile(t.Fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", name, err)
		}
		rel, err := filepath.Rel(root, name)
		t.Sources = append(t.Sources, Source{filepath.ToSlash(rel), f})
		return err
	})
	return t, err
}

func (t *Tree) at(s Source, pos token.Pos) string {
	return fmt.Sprintf("%s:%d", s.Path, t.Fset.Position(pos).Line)
}

// Arrows lists every import of this module that its folder may not make, tests included.
func (t *Tree) Arrows() (faults []string) {
	for _, s := range t.Sources {
		for _, spec := range s.File.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			target, ours := strings.CutPrefix(name, module+"/")
			if err != nil || !ours || mayImport(s.folder(), target) {
				continue
			}
			faults = append(faults, fmt.Sprintf("%s: %s may not import %s", t.at(s, spec.Pos()), s.folder(), target))
		}
	}
	return faults
}

func mayImport(from, to string) bool {
	for dir := from; dir != "."; dir = path.Dir(dir) {
		if allowed, ok := arrows[dir]; ok {
			return slices.ContainsFunc(allowed, func(a string) bool { return within(to, a) })
		}
	}
	return false // a folder without a row: add it to arrows, or move it
}

func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// Packages lists folders whose package has no comment in any file, and packages called util.
func (t *Tree) Packages() (faults []string) {
	documented := map[string]bool{}
	for _, s := range t.Sources {
		if !s.isTest() {
			documented[s.folder()] = documented[s.folder()] || s.File.Doc.Text() != ""
		}
		if strings.HasPrefix(s.File.Name.Name, "util") {
			faults = append(faults, fmt.Sprintf("%s: a package is named for what it does, not %s", s.Path, s.File.Name.Name))
		}
	}
	for folder, ok := range documented {
		if !ok {
			faults = append(faults, folder+": no file has a package comment")
		}
	}
	slices.Sort(faults)
	return faults
}

// Comments lists exported names without a comment: functions, methods of exported types, types, constants, variables.
// One comment does for a group, and one behind a one-line declaration counts.
func (t *Tree) Comments() (faults []string) {
	for _, s := range t.Sources {
		if s.isTest() || s.File.Name.Name == "main" {
			continue
		}
		for _, d := range s.File.Decls {
			for _, name := range t.bare(s, d) {
				faults = append(faults, fmt.Sprintf("%s: %s has no comment", t.at(s, d.Pos()), name))
			}
		}
	}
	return faults
}

// bare is the exported names of a declaration that have no comment.
func (t *Tree) bare(s Source, d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc.Text() == "" && isPublic(d) && !t.trailing(s, d) {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		if d.Doc.Text() == "" && d.Tok != token.IMPORT {
			return bareSpecs(d.Specs)
		}
	}
	return nil
}

// understood are methods whose name says all there is, by an interface everybody knows.
var understood = []string{"String", "Error", "Unwrap", "Len", "Less", "Swap"}

func isPublic(d *ast.FuncDecl) bool {
	if !d.Name.IsExported() || d.Recv != nil && slices.Contains(understood, d.Name.Name) {
		return false
	}
	return d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// trailing says whether a comment stands behind d on its last line.
func (t *Tree) trailing(s Source, d ast.Decl) bool {
	last := t.Fset.Position(d.End()).Line
	return slices.ContainsFunc(s.File.Comments, func(c *ast.CommentGroup) bool {
		return c.Pos() > d.Pos() && t.Fset.Position(c.Pos()).Line == last
	})
}

func bareSpecs(specs []ast.Spec) (names []string) {
	for _, spec := range specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && spec.Doc.Text() == "" && spec.Comment.Text() == "" {
				names = append(names, spec.Name.Name)
			}
		case *ast.ValueSpec:
			if spec.Doc.Text() != "" || spec.Comment.Text() != "" {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// Lengths that are worth a second look.
const (
	longFunc   = 50
	longFile   = 400
	longParams = 5
)

// Lengths reports long functions, files and parameter lists. It is no list of faults.
func (t *Tree) Lengths() (notes []string) {
	for _, s := range t.Sources {
		if n := t.Fset.Position(s.File.End()).Line; n > longFile {
			notes = append(notes, fmt.Sprintf("%s: %d lines", s.Path, n))
		}
		for _, d := range s.File.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := t.Fset.Position(f.End()).Line - t.Fset.Position(f.Pos()).Line + 1
			if n > longFunc {
				notes = append(notes, fmt.Sprintf("%s: %s has %d lines", t.at(s, f.Pos()), f.Name.Name, n))
			}
			if p := f.Type.Params.NumFields(); p > longParams {
				notes = append(notes, fmt.Sprintf("%s: %s has %d parameters", t.at(s, f.Pos()), f.Name.Name, p))
			}
		}
	}
	return notes
}
