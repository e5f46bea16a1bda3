package trace

import (
	"fmt"
	"iter"
	"math"
	"reflect"
	"unsafe"
)

// batchRows is how many rows are put together at once from decoded columns.
const batchRows = 1024

// fileRows yields the rows of a table, one row group in memory at a time.
func fileRows[T any](t *tableFile, columns []column) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		reader, err := newChunkReader(t)
		if err != nil {
			yield(nil, err)
			return
		}
		defer reader.close()
		chunks := make([]chunk, len(columns))
		batch := make([]T, batchRows)
		var done int64
		for g := range t.meta.RowGroups {
			rows := int(t.meta.RowGroups[g].NumRows)
			if err := t.readGroup(reader, chunks, g, columns); err != nil {
				yield(nil, err)
				return
			}
			for first := 0; first < rows; first += batchRows {
				part := batch[:min(batchRows, rows-first)]
				if err := fillRows(part, chunks, columns, first); err != nil {
					yield(nil, t.errorAt(-1, fmt.Sprintf("rows %d to %d", done,
						done+int64(len(part))-1), err))
					return
				}
				done += int64(len(part))
				for i := range part {
					if !yield(&part[i], nil) {
						return
					}
				}
			}
		}
	}
}

// readGroup decodes all columns of row group g.
func (t *tableFile) readGroup(r *chunkReader, chunks []chunk, g int, columns []column) error {
	for i := range columns {
		if err := r.read(&chunks[i], &t.meta.RowGroups[g], &t.leaves[i],
			columns[i].name); err != nil {
			return err
		}
	}
	return nil
}

// fillRows copies rows first… of the decoded columns into rows, column by column.
func fillRows[T any](rows []T, chunks []chunk, columns []column, first int) error {
	typ := reflect.TypeFor[T]()
	for i, c := range columns {
		field := typ.Field(i)
		base := unsafe.Add(unsafe.Pointer(unsafe.SliceData(rows)), field.Offset)
		if field.Type.Kind() == reflect.String {
			scatter(base, typ.Size(), chunks[i].texts[first:first+len(rows)])
			continue
		}
		ints := chunks[i].ints[first : first+len(rows)]
		if !c.nullable {
			for _, v := range ints {
				if v == Null && field.Type.Kind() == reflect.Int64 {
					return fmt.Errorf("column %q is null, which it may not be", c.name)
				}
			}
		}
		switch field.Type.Kind() {
		case reflect.Int64:
			scatter(base, typ.Size(), ints)
		case reflect.Float64:
			for j, v := range ints {
				*(*float64)(unsafe.Add(base,
					uintptr(j)*typ.Size())) = math.Float64frombits(uint64(v))
			}
		case reflect.Bool:
			for j, v := range ints {
				*(*bool)(unsafe.Add(base, uintptr(j)*typ.Size())) = v&1 == 1
			}
		}
	}
	return nil
}

// scatter writes values into a field at base of rows stride bytes apart.
func scatter[V any](base unsafe.Pointer, stride uintptr, values []V) {
	for j := range values {
		*(*V)(unsafe.Add(base, uintptr(j)*stride)) = values[j]
	}
}
