package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"highwater/internal/regular"
)

// maxManifestBytes is the largest manifest.json that is read: a real one has a few KiB.
const maxManifestBytes = 16 << 20

// ReadManifest reads the manifest of the trace directory dir, strictly: a foreign schema version, a
// wrong type, a second document or a file over the size limit is a FileError.
func ReadManifest(dir string) (*Manifest, error) {
	path := manifestPath(dir)
	text, err := readLimited(path, maxManifestBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fileError(dir, "it has no manifest.json", "give a trace directory NAME.hw",
			ErrNotTrace)
	case err != nil:
		return nil, fileError(path, "", hintFor(err), err)
	}
	return parseManifest(path, text)
}

func parseManifest(path string, text []byte) (*Manifest, error) {
	var version struct {
		SchemaVersion *int `json:"schema_version"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, manifestError(path, err)
	}
	switch v := version.SchemaVersion; {
	case v == nil:
		return nil, fileError(path, "schema_version is missing",
			"this is not the manifest of a Highwater trace", ErrNotTrace)
	case *v > SchemaVersion:
		return nil, fileError(path, fmt.Sprintf("schema version %d, this program reads up to %d",
			*v, SchemaVersion),
			"use the highwater that wrote it, or a newer one", nil)
	case *v < 1:
		return nil, fileError(path, fmt.Sprintf("schema version %d", *v), hintDamaged, nil)
	}
	m := new(Manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, manifestError(path, err)
	}
	if m.Checksum == "" && endsInDigest(text) || m.Checksum != "" &&
		m.Checksum != checksum(text, m.Checksum) {
		return nil, fileError(path, "its checksum does not match", "it is damaged, or was edited "+
			"by hand: delete \"checksum\", and the comma before it, to accept an edit", nil)
	}
	m.Checksum = ""
	return m, nil
}

// noChecksum is what the digits of a checksum are while it is computed.
var noChecksum = strings.Repeat("0", 2*sha256.Size)

// checksum is the SHA-256 in hex of text with the last digits in it as zeros. Digits of another length
// match nothing.
func checksum(text []byte, digits string) string {
	at := bytes.LastIndex(text, []byte(digits))
	if at < 0 || len(digits) != len(noChecksum) {
		return ""
	}
	h := sha256.New()
	for _, part := range [][]byte{text[:at], []byte(noChecksum), text[at+len(digits):]} {
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// endsInDigest tells whether the last value is one like a checksum: where there is no checksum,
// that is one whose key is damaged.
func endsInDigest(text []byte) bool {
	text, ok := bytes.CutSuffix(bytes.TrimSpace(text), []byte("}"))
	text, ok2 := bytes.CutSuffix(bytes.TrimSpace(text), []byte(`"`))
	at := len(text) - len(noChecksum)
	if !ok || !ok2 || at < 1 || text[at-1] != '"' {
		return false
	}
	_, err := hex.DecodeString(string(text[at:]))
	return err == nil
}

// manifestError gives a JSON error its offset.
func manifestError(path string, err error) error {
	e := fileError(path, "", hintDamaged, err)
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		e.Offset = syntax.Offset
	case errors.As(err, &typ):
		e.Offset = typ.Offset
	}
	return e
}

// readLimited reads a regular file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, _, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%w of %d bytes", ErrTooLarge, limit)
	}
	return text, nil
}

// WriteManifest writes the manifest of dir by a temporary file, fsync and rename.
func WriteManifest(dir string, m *Manifest) error {
	text, err := encodeManifest(m)
	if err == nil {
		err = replaceFile(manifestPath(dir), text)
	}
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

func encodeManifest(m *Manifest) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	sealed := *m
	sealed.Checksum = noChecksum
	if err := enc.Encode(sealed); err != nil {
		return nil, err
	}
	if b.Len() > maxManifestBytes {
		return nil, fmt.Errorf("%w of %d bytes", ErrTooLarge, maxManifestBytes)
	}
	text := b.Bytes()
	at := bytes.LastIndex(text, []byte(noChecksum))
	copy(text[at:], checksum(text, noChecksum))
	return text, nil
}

// replaceFile gives path new content, whole or not at all, also after a power loss.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after the rename there is nothing to remove
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Hash is the SHA-256 of dir's manifest.json in hex: what derived_from holds.
func Hash(dir string) (string, error) {
	text, err := readLimited(manifestPath(dir), maxManifestBytes)
	if err != nil {
		return "", fmt.Errorf("hash trace: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Size is the number of bytes of the files in the trace directory, its journal included.
func Size(dir string) (int64, error) {
	if _, err := os.Stat(dir); err != nil {
		return 0, fmt.Errorf("size of trace: %w", err)
	}
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return ignoreGone(err)
	})
	if err != nil {
		return 0, fmt.Errorf("size of trace: %w", err)
	}
	return total, nil
}

// ignoreGone: a living writer renames and removes files while we look.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
