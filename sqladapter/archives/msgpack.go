package archives

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Extension types of LangGraph for objects of classes. Each contains a packed list that begins with
// module and class.
const (
	extSingleArgument = 0 // module, class, argument
	extArguments      = 1 // module, class, arguments
	extKeywords       = 2 // module, class, keywords
	extMethod         = 3 // module, class, argument, method
	extModel1         = 4 // module, class, keywords, method
	extModel2         = 5 // module, class, keywords, method
	extArray          = 6 // numbers: kept as bytes
	extTime           = -1
)

// unpack decodes a msgpack value. Its memory is limited by the actual size of the input, whatever
// lengths that claims.
func unpack(a *allowance, b []byte) (any, error) {
	u := unpacker{b, a}
	v, err := u.value(0)
	if err == nil && len(u.b) > 0 {
		err = fmt.Errorf("%w: %d bytes after it", errPacked, len(u.b))
	}
	return v, err
}

type unpacker struct {
	b    []byte
	item *allowance
}

var errCut = fmt.Errorf("%w: cut off", errPacked)

// take returns the next n bytes.
func (u *unpacker) take(n uint64) ([]byte, error) {
	if n > uint64(len(u.b)) {
		return nil, errCut
	}
	b := u.b[:n]
	u.b = u.b[n:]
	return b, nil
}

// uint reads a number of n bytes.
func (u *unpacker) uint(n uint64) (uint64, error) {
	b, err := u.take(n)
	if err != nil {
		return 0, err
	}
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, nil
}

func (u *unpacker) value(depth int) (any, error) {
	if depth > maxPackedDepth {
		return nil, errTooDeep
	}
	if err := u.item.value(); err != nil {
		return nil, err
	}
	head, err := u.take(1)
	if err != nil {
		return nil, err
	}
	c := head[0]
	switch {
	case c <= 0x7f:
		return integer(int64(c)), nil
	case c <= 0x8f:
		return u.object(uint64(c&0x0f), depth)
	case c <= 0x9f:
		return u.list(uint64(c&0x0f), depth)
	case c <= 0xbf:
		return u.text(uint64(c & 0x1f))
	case c >= 0xe0:
		return integer(int64(int8(c))), nil
	}
	switch c {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return c == 0xc3, nil
	case 0xc4, 0xc5, 0xc6:
		n, err := u.uint(1 << (c - 0xc4))
		if err != nil {
			return nil, err
		}
		b, err := u.take(n)
		return b, err
	case 0xc7, 0xc8, 0xc9:
		n, err := u.uint(1 << (c - 0xc7))
		if err != nil {
			return nil, err
		}
		return u.extension(n, depth)
	case 0xca:
		v, err := u.uint(4)
		return number(float64(math.Float32frombits(uint32(v)))), err
	case 0xcb:
		v, err := u.uint(8)
		return number(math.Float64frombits(v)), err
	case 0xcc, 0xcd, 0xce, 0xcf:
		v, err := u.uint(1 << (c - 0xcc))
		return json.Number(strconv.FormatUint(v, 10)), err
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := uint64(1) << (c - 0xd0)
		v, err := u.uint(size)
		shift := 64 - 8*size
		return integer(int64(v<<shift) >> shift), err
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return u.extension(1<<(c-0xd4), depth)
	case 0xd9, 0xda, 0xdb:
		n, err := u.uint(1 << (c - 0xd9))
		if err != nil {
			return nil, err
		}
		return u.text(n)
	case 0xdc, 0xdd:
		n, err := u.uint(2 << (c - 0xdc))
		if err != nil {
			return nil, err
		}
		return u.list(n, depth)
	case 0xde, 0xdf:
		n, err := u.uint(2 << (c - 0xde))
		if err != nil {
			return nil, err
		}
		return u.object(n, depth)
	}
	return nil, fmt.Errorf("%w: unknown type byte %#x", errPacked, c)
}

func integer(v int64) any { return json.Number(strconv.FormatInt(v, 10)) }

func (u *unpacker) text(n uint64) (any, error) {
	b, err := u.take(n)
	return cleanText(b), err
}

func (u *unpacker) list(n uint64, depth int) (any, error) {
	if n > uint64(len(u.b)) { // each element takes a byte at least
		return nil, errCut
	}
	list := make([]any, 0, min(n, 1024))
	for range n {
		v, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (u *unpacker) object(n uint64, depth int) (any, error) {
	if 2*n > uint64(len(u.b)) {
		return nil, errCut
	}
	if err := u.item.object(); err != nil {
		return nil, err
	}
	f := make(fields, 0, min(n, 1024))
	for range n {
		k, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			key = string(appendJSON(nil, k))
		}
		f = append(f, field{key, v})
	}
	return f, nil
}

// extension decodes a value of an extension type, without executing anything.
func (u *unpacker) extension(n uint64, depth int) (any, error) {
	head, err := u.take(1)
	if err != nil {
		return nil, err
	}
	b, err := u.take(n)
	if err != nil {
		return nil, err
	}
	switch kind := int8(head[0]); kind {
	case extTime:
		if t, ok := packedTime(b); ok {
			return t.Format(time.RFC3339Nano), nil
		}
	case extSingleArgument, extArguments, extKeywords, extMethod, extModel1, extModel2:
		inner := unpacker{b, u.item}
		v, err := inner.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list, ok := v.([]any)
		if !ok || len(list) < 3 {
			return nil, fmt.Errorf("%w: extension %d without class and arguments", errPacked, kind)
		}
		x := &instance{value: list[2]}
		x.module, _ = list[0].(string)
		x.class, _ = list[1].(string)
		return x, nil
	case extArray:
		return &instance{module: "numpy", class: "ndarray", value: b}, nil
	default:
		return &instance{module: "msgpack", class: "extension " + strconv.Itoa(int(kind)), value: b}, nil
	}
	return b, nil
}

// packedTime decodes msgpack's timestamp type.
func packedTime(b []byte) (time.Time, bool) {
	switch len(b) {
	case 4:
		return time.Unix(int64(binary.BigEndian.Uint32(b)), 0).UTC(), true
	case 8:
		v := binary.BigEndian.Uint64(b)
		return time.Unix(int64(v&(1<<34-1)), int64(v>>34)).UTC(), true
	case 12:
		return time.Unix(int64(binary.BigEndian.Uint64(b[4:])), int64(binary.BigEndian.Uint32(b))).UTC(), true
	}
	return time.Time{}, false
}
