package content

import "io"

// verifyReader passes on a body and checks it at its end.
type verifyReader struct {
	r      io.Reader
	hasher *Hasher
	id     ID
	err    error // the result at the end of the body
}

// VerifyReader returns a reader that reads r and checks the body against an id.
// If the body differs, it returns a *MismatchError instead of io.EOF: the bytes
// are trustworthy only after io.EOF.
func VerifyReader(r io.Reader, id ID) io.Reader {
	return &verifyReader{r: r, hasher: NewHasher(), id: id}
}

func (v *verifyReader) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.r.Read(p)
	_, _ = v.hasher.Write(p[:n])
	if err == io.EOF {
		if v.hasher.ID() != v.id {
			err = &MismatchError{What: "body", ID: v.id}
		}
		v.err = err
	}
	return n, err
}
