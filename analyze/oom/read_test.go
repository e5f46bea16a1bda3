package oom

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestX(t *testing.T) {
	files, _ := filepath.Glob(os.Getenv("OOMGLOB"))
	for _, f := range files {
		r := NewReader()
		b, _ := os.Open(f)
		if err := r.Read(filepath.Base(f), b); err != nil {
			t.Fatal(err)
		}
		j, _ := json.MarshalIndent(r.Report(), "", " ")
		t.Log(string(j))
	}
}
