package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"highwater/internal/regular"
)

// Limits on what a file may ask for. Traces that this package writes stay far below them.
const (
	maxFooterBytes = 8 << 20   // about 100 M rows
	maxGroupRows   = 1 << 20   // rows of a row group; written with groupRows
	maxChunkBytes  = 256 << 20 // one column of one row group, compressed
	maxPageBytes   = 64 << 20  // one page, uncompressed
	parquetMagic   = "PAR1"
	parquetFrame   = 12 // magic, footer length, magic
)

// tableFile is an open Parquet file of a trace whose footer has been checked.
type tableFile struct {
	path, table string
	in          io.ReaderAt
	close       func() error
	size        int64
	meta        format.FileMetaData
	leaves      []leaf // one for each column of the table
	listed      *Table // what the manifest says of it, or nil
	verified    atomic.Bool
}

// leaf is where a column of the table stands in the file.
type leaf struct {
	index    int // -1: not in the file, read as its default
	typ      format.Type
	optional bool
}

func tablePath(dir, table string) string { return filepath.Join(dir, table+".parquet") }

// openTable opens DIR/TABLE.parquet and checks everything that its footer says before anything
// trusts it, and the file against what the manifest lists.
func openTable[T any](dir, table string, columns []column, m *Manifest) (*tableFile, error) {
	t := &tableFile{path: tablePath(dir, table), table: table, listed: m.listed(table)}
	f, size, err := regular.Open(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, t.errorAt(-1, "the table is missing", nil)
	case errors.Is(err, regular.ErrNotRegular):
		return nil, t.errorAt(-1, regular.ErrNotRegular.Error(), nil)
	case err != nil:
		return nil, t.errorAt(-1, "", err)
	}
	t.in, t.close, t.size = f, f.Close, size
	if err = t.check(columns, reflect.TypeFor[T]()); err == nil {
		err = t.checkListed()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return t, nil
}

// check reads the footer and checks all that it says.
func (t *tableFile) check(columns []column, row reflect.Type) error {
	if err := t.readFooter(); err != nil {
		return err
	}
	if err := t.bindColumns(columns); err != nil {
		return err
	}
	for i, c := range columns {
		if want := physicalType(row.Field(i).Type); t.leaves[i].typ != want {
			return t.errorAt(-1, fmt.Sprintf("column %q is of type %s, want %s", c.name,
				t.leaves[i].typ, want), nil)
		}
	}
	return t.checkGroups(columns)
}

// readFooter reads the metadata at the end of the file.
func (t *tableFile) readFooter() error {
	if t.size < parquetFrame {
		return t.errorAt(0, fmt.Sprintf("%d bytes are too short for a Parquet file", t.size), nil)
	}
	head, tail := make([]byte, 4), make([]byte, 8)
	if err := t.readAt(head, 0); err != nil {
		return err
	}
	if string(head) != parquetMagic {
		return t.errorAt(0, "not a Parquet file", nil)
	}
	if err := t.readAt(tail, t.size-8); err != nil {
		return err
	}
	if string(tail[4:]) != parquetMagic {
		return t.errorAt(t.size-4, "the file is cut off: its footer is missing", nil)
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > t.size-parquetFrame || n > maxFooterBytes {
		return t.errorAt(t.size-8, fmt.Sprintf("footer of %d bytes in a file of %d", n, t.size),
			nil)
	}
	at := t.size - 8 - n
	footer := make([]byte, n)
	if err := t.readAt(footer, at); err != nil {
		return err
	}
	if whole, err := scanThrift(footer); err != nil || int64(whole) != n {
		return t.errorAt(at, "the footer makes no sense", nil)
	}
	if err := unmarshalThrift(footer, &t.meta); err != nil {
		return t.errorAt(at, "decode footer", err)
	}
	return nil
}

// unmarshalThrift decodes scanned bytes; a panic of the decoder becomes an error.
func unmarshalThrift(b []byte, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errThrift, r)
		}
	}()
	return thrift.Unmarshal(new(thrift.CompactProtocol), b, v)
}

// bindColumns finds the table's columns among the leaves of the file's schema. Others are ignored.
func (t *tableFile) bindColumns(columns []column) error {
	t.leaves = make([]leaf, len(columns))
	for i := range t.leaves {
		t.leaves[i].index = -1
	}
	schema := t.meta.Schema
	if len(schema) == 0 {
		return t.errorAt(-1, "the schema is empty", nil)
	}
	leaves := 0
	for i := 1; i < len(schema); {
		size, inside := subtree(schema, i, 0)
		if size == 0 {
			return t.errorAt(-1, "the schema makes no sense", nil)
		}
		if at := columnIndex(columns, schema[i].Name); at >= 0 && size == 1 {
			if err := t.bind(&t.leaves[at], &schema[i], leaves); err != nil {
				return err
			}
		}
		i, leaves = i+size, leaves+inside
	}
	for i, c := range columns {
		if t.leaves[i].index < 0 {
			return t.errorAt(-1, fmt.Sprintf("column %q is missing", c.name), nil)
		}
	}
	return t.checkWidth(leaves)
}

// checkWidth: every row group has a chunk for every leaf.
func (t *tableFile) checkWidth(leaves int) error {
	for i := range t.meta.RowGroups {
		if n := len(t.meta.RowGroups[i].Columns); n != leaves {
			return t.errorAt(-1, fmt.Sprintf("row group %d has %d columns, the schema %d", i, n,
				leaves), nil)
		}
	}
	return nil
}

// subtree is the number of schema elements, and of leaves, of the column at i; 0 where the tree
// makes no sense.
func subtree(schema []format.SchemaElement, i, depth int) (size, leaves int) {
	if i >= len(schema) || depth > 8 {
		return 0, 0
	}
	children := int(schema[i].NumChildren.V)
	if children == 0 {
		return 1, 1
	}
	size = 1
	for range children {
		s, l := subtree(schema, i+size, depth+1)
		if s == 0 {
			return 0, 0
		}
		size, leaves = size+s, leaves+l
	}
	return size, leaves
}

func (t *tableFile) bind(l *leaf, e *format.SchemaElement, index int) error {
	if l.index >= 0 || !e.Type.Valid || e.RepetitionType.V == format.Repeated {
		return t.errorAt(-1, fmt.Sprintf("column %q stands twice or is repeated", e.Name), nil)
	}
	*l = leaf{index: index, typ: e.Type.V, optional: e.RepetitionType.V == format.Optional}
	return nil
}

// checkGroups checks counts and places of all row groups against the file's size.
func (t *tableFile) checkGroups(columns []column) error {
	var rows int64
	for g := range t.meta.RowGroups {
		group := &t.meta.RowGroups[g]
		if group.NumRows < 0 || group.NumRows > maxGroupRows {
			return t.errorAt(-1, fmt.Sprintf("row group %d has %d rows, at most %d are read", g,
				group.NumRows, maxGroupRows), nil)
		}
		rows += group.NumRows
		for i, c := range columns {
			if err := t.checkChunk(group, &t.leaves[i], c.name); err != nil {
				return err
			}
		}
	}
	if rows != t.meta.NumRows {
		return t.errorAt(-1, fmt.Sprintf("the footer counts %d rows, its row groups %d",
			t.meta.NumRows, rows), nil)
	}
	return nil
}

func (t *tableFile) checkChunk(group *format.RowGroup, l *leaf, name string) error {
	m := &group.Columns[l.index].MetaData
	begin, n := chunkPlace(m)
	switch {
	case begin < 4 || n < 0 || n > maxChunkBytes || begin > t.size || n > t.size-begin:
		return t.errorAt(-1, fmt.Sprintf("column %q claims bytes %d to %d of %d", name, begin,
			begin+n, t.size), nil)
	case m.NumValues != group.NumRows || m.Type != l.typ:
		return t.errorAt(begin, fmt.Sprintf("column %q has %d values of type %s, want %d of %s",
			name, m.NumValues, m.Type, group.NumRows, l.typ), nil)
	case !slices.Contains([]format.CompressionCodec{format.Zstd, format.Uncompressed}, m.Codec):
		return t.errorAt(begin, fmt.Sprintf("column %q is compressed with %s: only zstd is read",
			name, m.Codec), nil)
	}
	return nil
}

// chunkPlace is where a column's pages of one row group stand.
func chunkPlace(m *format.ColumnMetaData) (begin, size int64) {
	begin = m.DataPageOffset
	if d := m.DictionaryPageOffset; d > 0 && d < begin {
		begin = d
	}
	return begin, m.TotalCompressedSize
}

func (t *tableFile) readAt(b []byte, at int64) error {
	if _, err := t.in.ReadAt(b, at); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return t.errorAt(at, "", err)
	}
	return nil
}

func (t *tableFile) errorAt(offset int64, what string, err error) error {
	return &FileError{
		Path: t.path, Table: t.table, Offset: offset, Row: -1, What: what,
		Hint: hintFor(err), Err: err,
	}
}

// physicalType is how a field of a row stands in a file.
func physicalType(field reflect.Type) format.Type {
	switch field.Kind() {
	case reflect.Int64:
		return format.Int64
	case reflect.Bool:
		return format.Boolean
	case reflect.Float64:
		return format.Double
	}
	return format.ByteArray
}
