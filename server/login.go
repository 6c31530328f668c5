package server

import (
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
)

// The code of a link is in its fragment, which browsers do not send and logs do not contain. The script of this page
// reads it and exchanges it for a session.
var (
	//go:embed login.html
	loginHTML []byte
	//go:embed login.js
	loginJS []byte
	//go:embed login.css
	loginCSS []byte
)

func (s *Server) loginPage(w http.ResponseWriter, _ *http.Request) { s.sendLogin(w, http.StatusOK) }

func (s *Server) sendLogin(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(loginHTML) // the caller may be gone
}

func (s *Server) loginScript(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = w.Write(loginJS) // the caller may be gone
}

func (s *Server) loginStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(loginCSS) // the caller may be gone
}

// noIcon answers the request for an icon, which browsers send for any document.
func (s *Server) noIcon(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// maxCode limits the body of a login, in bytes.
const maxCode = 256

// login exchanges a code for a session. Only a script of our own page may call it.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Sec-Fetch-Site") != "same-origin" {
		s.refuse(w, r, http.StatusForbidden, "another site", "only the page itself may ask for this")
		return
	}
	code, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCode))
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, "no code", "the code could not be read")
		return
	}
	secret, ok := s.sessions.begin(string(code), s.o.now())
	if !ok {
		s.refuse(w, r, http.StatusForbidden, "no code", "the link has been used, or is older than a minute")
		return
	}
	http.SetCookie(w, s.cookie(secret, int(sessionLife.Seconds())))
	w.WriteHeader(http.StatusNoContent)
}

// logout ends the session of the page.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(s.cookieName()); err == nil {
		s.sessions.end(c.Value)
	}
	http.SetCookie(w, s.cookie("", -1))
	w.WriteHeader(http.StatusNoContent)
}

// cookieName includes the port, because browsers share cookies between the ports of a host.
func (s *Server) cookieName() string { return "lineage-" + s.port }

func (s *Server) cookie(secret string, age int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(), Value: secret, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.o.TLS != nil,
	}
}

// newLink returns a new link.
func (s *Server) newLink(w http.ResponseWriter, r *http.Request) {
	if len(s.o.Routes) == 0 {
		s.refuse(w, r, http.StatusNotFound, "no page", "the server was started without the page")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(linkRecord{s.Link()}) // the caller may be gone
}
