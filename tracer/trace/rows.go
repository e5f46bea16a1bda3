package trace

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
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
		w := rowWalk[T]{
			t: t, columns: columns, chunks: make([]chunk, len(columns)),
			batch: make([]T, batchRows),
		}
		for g := range t.meta.RowGroups {
			if err = t.readGroup(reader, w.chunks, g, columns); err == nil {
				err = w.group(int(t.meta.RowGroups[g].NumRows), yield)
			}
			if err != nil {
				break
			}
		}
		if err == nil {
			err = t.verify()
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

// errEnough ends a walk whose caller wants no more rows.
var errEnough = errors.New("enough rows")

// rowWalk puts rows together from decoded columns and hands them out.
type rowWalk[T any] struct {
	t       *tableFile
	columns []column
	chunks  []chunk // of the row group under way
	batch   []T
	done    int64 // rows before the batch
}

// group hands out the rows of one row group.
func (w *rowWalk[T]) group(rows int, yield func(*T, error) bool) error {
	for first := 0; first < rows; first += batchRows {
		part := w.batch[:min(batchRows, rows-first)]
		if err := fillRows(part, w.chunks, w.columns, first); err != nil {
			last := w.done + int64(len(part)) - 1
			return w.t.errorAt(-1, fmt.Sprintf("rows %d to %d", w.done, last), err)
		}
		for i := range part {
			if !yield(&part[i], nil) {
				return errEnough
			}
		}
		w.done += int64(len(part))
	}
	return nil
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
	for i := range columns {
		field := typ.Field(i)
		base := unsafe.Add(unsafe.Pointer(unsafe.SliceData(rows)), field.Offset)
		c := chunks[i].part(first, len(rows))
		if err := checkNulls(&columns[i], field.Type.Kind(), c.ints); err != nil {
			return err
		}
		fillField(base, typ.Size(), field.Type.Kind(), &c)
	}
	return nil
}

// checkNulls: only a nullable column of integers has nulls.
func checkNulls(c *column, kind reflect.Kind, ints []int64) error {
	if !c.nullable && kind == reflect.Int64 && slices.Contains(ints, Null) {
		return fmt.Errorf("column %q is null, which it may not be", c.name)
	}
	return nil
}

// fillField copies a column's values into the field of that kind at base of rows stride bytes
// apart.
func fillField(base unsafe.Pointer, stride uintptr, kind reflect.Kind, c *chunk) {
	switch kind {
	case reflect.String:
		scatter(base, stride, c.texts)
	case reflect.Int64:
		scatter(base, stride, c.ints)
	case reflect.Float64:
		for j, v := range c.ints {
			*(*float64)(unsafe.Add(base, uintptr(j)*stride)) = math.Float64frombits(uint64(v))
		}
	case reflect.Bool:
		for j, v := range c.ints {
			*(*bool)(unsafe.Add(base, uintptr(j)*stride)) = v&1 == 1
		}
	}
}

// scatter writes values into a field at base of rows stride bytes apart.
func scatter[V any](base unsafe.Pointer, stride uintptr, values []V) {
	for j := range values {
		*(*V)(unsafe.Add(base, uintptr(j)*stride)) = values[j]
	}
}
