package content

import "io"

// verifyReader passes a body on and checks it when it ends.
type verifyReader struct {
	r      io.Reader
	hasher *Hasher
	id     ID
	err    error // what the end of the body brought
}

// VerifyReader returns a reader of what r reads that checks it against an id.
// Instead of io.EOF it returns a *MismatchError when the body is another one, so
// nothing may be trusted before io.EOF was seen.
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
