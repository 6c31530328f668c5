package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/server/access"
)

// A name that was made to lead to this machine is not a host of ours, whoever asks.
func TestHostIsOurs(t *testing.T) {
	h := open(t)
	bearer := h.token(access.Token{})
	for _, host := range []string{"127.0.0.1:" + h.port, "localhost:" + h.port, "LOCALHOST:" + h.port, h.sessions.host + ":" + h.port} {
		require.Equal(t, 200, h.get("/", bearer, "Host: "+host).status, host)
	}
	for _, host := range []string{
		"evil.example:" + h.port, "127.0.0.1", "localhost", "localhost:1", "other.localhost:" + h.port, "10.0.0.1:" + h.port, "0.0.0.0:" + h.port,
		"localhost.:" + h.port, "127.0.0.1.evil.example:" + h.port, "[::1]:" + h.port, "x" + h.sessions.host + ":" + h.port,
	} {
		require.Equal(t, http.StatusMisdirectedRequest, h.get("/", bearer, "Host: "+host).status, host)
		require.Equal(t, http.StatusMisdirectedRequest, h.get("/login", "Host: "+host).status, host)
	}
}

// A page of another origin cannot call, unless its origin is allowed, and then only with a token.
func TestOriginIsOurs(t *testing.T) {
	h := open(t, func(o *Options) { o.Origins = []string{"https://app.example"} })
	bearer := h.token(access.Token{Writes: true})
	self := "Origin: http://" + h.Addr().String()
	require.Equal(t, 200, h.do("POST", "/act", "", bearer, self, ours).status)
	for _, origin := range []string{"null", "https://evil.example", "http://127.0.0.1:1", "http://localhost:" + h.port, "https://" + h.Addr().String(), "https://app.example.evil.example"} {
		require.Equal(t, http.StatusForbidden, h.get("/", bearer, "Origin: "+origin).status, origin)
		require.Equal(t, http.StatusForbidden, h.do("POST", "/act", "", bearer, "Origin: "+origin).status, origin)
	}
	session := h.session()
	require.Equal(t, 200, h.do("POST", "/act", "", session, "Origin: null", ours).status, "browsers send this for forms of a page without a referrer")
	for _, site := range []string{"cross-site", "same-site", "none", "Same-Origin", ""} {
		require.Equal(t, http.StatusForbidden, h.do("POST", "/act", "", session, "Origin: null", "Sec-Fetch-Site: "+site).status, site)
		require.Equal(t, http.StatusForbidden, h.do("POST", "/act", "", bearer, "Origin: null", "Sec-Fetch-Site: "+site).status, site)
	}
	got := h.get("/", bearer, "Origin: https://app.example", "Sec-Fetch-Site: cross-site")
	require.Equal(t, 200, got.status)
	require.Equal(t, "https://app.example", got.header.Get("Access-Control-Allow-Origin"))
	require.Empty(t, got.header.Get("Access-Control-Allow-Credentials"))
	require.Equal(t, http.StatusNoContent, h.do("OPTIONS", "/act", "", "Origin: https://app.example", "Access-Control-Request-Method: POST").status)
	require.Equal(t, http.StatusForbidden, h.get("/", session, "Origin: https://app.example", "Sec-Fetch-Site: cross-site").status)
	require.Empty(t, open(t).get("/", "Origin: https://app.example").header.Get("Access-Control-Allow-Origin"))
}

// A browser that another site made write says so, even without an origin.
func TestWritesAreOfThePage(t *testing.T) {
	h := open(t)
	bearer := h.token(access.Token{Writes: true})
	require.Equal(t, 200, h.do("POST", "/act", "", bearer).status, "programs state no site")
	for _, site := range []string{"cross-site", "same-site"} {
		require.Equal(t, http.StatusForbidden, h.do("POST", "/act", "", bearer, "Sec-Fetch-Site: "+site).status, site)
	}
}

// Browsers send cookies to every port of a host, so that the page of another server could ask.
func TestSessionIsOfThePage(t *testing.T) {
	h := open(t)
	session := h.session()
	require.Equal(t, 200, h.get("/", session, ours).status)
	require.Equal(t, 200, h.get("/", session, "Sec-Fetch-Site: none").status)
	require.Equal(t, 200, h.do("POST", "/act", "", session, ours).status)
	for _, site := range []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Site: cross-site", "X-Nothing: "} {
		require.Equal(t, http.StatusForbidden, h.get("/", session, site).status, site)
		require.Equal(t, http.StatusForbidden, h.do("POST", "/act", "", session, site).status, site)
	}
	require.Equal(t, http.StatusForbidden, h.do("POST", "/act", "", session, "Sec-Fetch-Site: none").status)
}

func TestNobody(t *testing.T) {
	h := open(t)
	for _, path := range []string{"/", "/v1/events", "/content/" + strings.Repeat("0", 64), "/metrics"} {
		got := h.get(path)
		require.Equal(t, http.StatusUnauthorized, got.status, path)
		require.Equal(t, "application/problem+json", got.header.Get("Content-Type"))
		require.Equal(t, http.StatusUnauthorized, h.get(path, "Authorization: Bearer lineage_x").status)
		require.Equal(t, http.StatusUnauthorized, h.get(path, "Authorization: Basic eDp5", "Cookie: lineage-"+h.port+"=x", ours).status)
	}
	require.Equal(t, http.StatusUnauthorized, h.get("/", strings.Replace(h.token(access.Token{}), "Bearer", "Basic", 1)).status, "a token is sent as one")
	require.Equal(t, http.StatusUnauthorized, h.do("POST", "/act", "").status)
	require.Equal(t, http.StatusUnauthorized, h.do("POST", "/links", "").status)
	require.Equal(t, http.StatusForbidden, h.do("POST", "/links", "", h.token(access.Token{Writes: true})).status)
	require.Equal(t, 200, h.get("/healthz").status)
	person := h.get("/", "Accept: text/html")
	require.Equal(t, http.StatusUnauthorized, person.status)
	require.Contains(t, person.body, "lineage serve")
}

// A link opens the page once and within a minute, from our own page only.
func TestLink(t *testing.T) {
	h := open(t)
	begin := func(link string, headers ...string) answer {
		_, code, _ := strings.Cut(link, "#")
		return h.do("POST", "/login", code, headers...)
	}
	link := h.Link()
	require.True(t, strings.HasPrefix(link, "http://"+h.sessions.host+":"+h.port+"/login#"), link)
	for _, site := range []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Site: none", "X-Nothing: "} {
		require.Equal(t, http.StatusForbidden, begin(link, site).status, site)
	}
	got := begin(link, ours)
	require.Equal(t, http.StatusNoContent, got.status)
	cookie := got.header.Get("Set-Cookie")
	for _, part := range []string{"lineage-" + h.port + "=", "; HttpOnly", "; SameSite=Strict", "; Max-Age=86400", "; Path=/"} {
		require.Contains(t, cookie, part)
	}
	require.NotContains(t, cookie, "Domain")
	require.Equal(t, http.StatusForbidden, begin(link, ours).status, "a link works once")
	link = h.Link()
	h.later(codeLife)
	require.Equal(t, http.StatusForbidden, begin(link, ours).status, "for a minute")
	require.Equal(t, http.StatusForbidden, begin("#", ours).status)
	require.Equal(t, http.StatusBadRequest, begin("#"+strings.Repeat("x", maxCode+1), ours).status)
	first := h.Link()
	h.later(time.Second)
	for range maxCodes {
		h.Link()
	}
	require.Equal(t, http.StatusForbidden, begin(first, ours).status, "the oldest goes first")
}

func TestSessionEnds(t *testing.T) {
	h := open(t)
	session := h.session()
	h.later(sessionLife - time.Second)
	require.Equal(t, 200, h.get("/", session, ours).status)
	h.later(time.Second)
	require.Equal(t, http.StatusUnauthorized, h.get("/", session, ours).status)
	session = h.session()
	require.Equal(t, http.StatusNoContent, h.do("POST", "/logout", "", session, ours).status)
	require.Equal(t, http.StatusUnauthorized, h.get("/", session, ours).status)
	other := open(t)
	require.Equal(t, http.StatusUnauthorized, other.get("/", strings.Replace(h.session(), h.port, other.port, 1), ours).status)
}

func TestTokens(t *testing.T) {
	h := open(t)
	_, _ = thread(t, h.store, lineage.ThreadOptions{UserID: "ada"}, "hello")
	reads := h.token(access.Token{})
	full := h.token(access.Token{Writes: true})
	part := h.token(access.Token{Writes: true, Scope: access.Scope{Users: []string{"ada"}}})
	require.Equal(t, 200, h.get("/", reads).status)
	require.Equal(t, 200, h.get("/metrics", reads).status)
	require.Equal(t, http.StatusForbidden, h.do("POST", "/act", "", reads).status, "for reading")
	require.Equal(t, http.StatusForbidden, h.do("POST", "/logout", "", full).status)
	require.Equal(t, 200, h.do("POST", "/act", "", full).status)
	for _, path := range []string{"/", "/metrics"} {
		require.Equal(t, http.StatusForbidden, h.get(path, part).status, "for a part")
	}
	require.Equal(t, http.StatusForbidden, h.do("POST", "/act", "", part).status)
	short := h.token(access.Token{Expires: h.clock.Add(time.Hour)})
	require.Equal(t, 200, h.get("/", short).status)
	h.later(time.Hour)
	require.Equal(t, http.StatusUnauthorized, h.get("/", short).status)
	all, err := h.access.List()
	require.NoError(t, err)
	require.NoError(t, h.access.Delete(t.Context(), all[0].ID))
	require.Equal(t, http.StatusUnauthorized, h.get("/", reads).status)
}

func TestReadOnly(t *testing.T) {
	h := open(t, func(o *Options) { o.ReadOnly = true })
	require.Equal(t, http.StatusForbidden, h.do("POST", "/act", "", h.token(access.Token{Writes: true})).status)
	require.Equal(t, http.StatusForbidden, h.do("POST", "/act", "", h.session(), ours).status)
	require.Equal(t, 200, h.get("/", h.session(), ours).status)
}

func TestHeaders(t *testing.T) {
	h := open(t)
	for _, got := range []answer{h.get("/", h.session(), ours), h.get("/login"), h.get("/nothing"), h.get("/")} {
		policy := got.header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			require.Contains(t, policy, part)
		}
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", got.header.Get("Referrer-Policy"))
		require.Equal(t, "same-origin", got.header.Get("Cross-Origin-Opener-Policy"))
		require.Equal(t, "same-origin", got.header.Get("Cross-Origin-Resource-Policy"))
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	}
}

// Neither the log nor the metrics have secrets, bodies or queries.
func TestLogHasNoSecrets(t *testing.T) {
	h := open(t)
	bearer, session := h.token(access.Token{}), h.session()
	h.get("/?q=private", bearer)
	h.do("POST", "/act", "private", session, ours)
	h.get("/panic", bearer)
	metrics := h.get("/metrics", bearer).body
	require.Contains(t, metrics, `lineage_requests_total{route="GET /{$}",status="200"} 1`)
	require.Contains(t, metrics, `lineage_requests_total{route="GET /panic",status="500"} 1`)
	log := h.log.String()
	require.Contains(t, log, "path=/act")
	require.Contains(t, log, `caller="token `)
	require.Contains(t, log, "a bug")
	for _, text := range []string{log, metrics} {
		require.NotContains(t, text, "private")
		require.NotContains(t, text, strings.TrimPrefix(bearer, "Authorization: Bearer "))
		_, secret, _ := strings.Cut(session, "=")
		require.NotContains(t, text, secret)
	}
}

// Other machines need TLS, or the explicit choice of none.
func TestListen(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	files := access.Open(t.TempDir(), store.ID())
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0"} {
		_, err := Open(t.Context(), Options{Store: store, Access: files, Listen: address})
		require.ErrorIs(t, err, ErrNeedsTLS, address)
	}
	_, err := Open(t.Context(), Options{Store: store, Access: files, Listen: "nonsense"})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	_, err = Open(t.Context(), Options{Store: store, Access: files, Listen: "127.0.0.1:0", Origins: []string{"https://x/path"}})
	require.ErrorIs(t, err, lineage.ErrInvalid)

	h := openOf(t, store, func(o *Options) { o.Listen, o.Plain = "0.0.0.0:0", true })
	at := "127.0.0.1:" + h.port
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+at+"/", nil)
	require.NoError(t, err)
	answer, err := h.client.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode, "a token in any case")

	// An address that is taken is an error at once, and the next port is used where none was asked for.
	_, err = Open(t.Context(), Options{Store: store, Access: files, Listen: h.Addr().String(), Plain: true})
	require.Error(t, err)
	first, second := open(t, func(o *Options) { o.Listen = "" }), open(t, func(o *Options) { o.Listen = "" })
	require.NotEqual(t, first.port, second.port)
}

func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"lineage.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	h := open(t, func(o *Options) {
		o.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}}}
	})
	require.Equal(t, "https://lineage.example:"+h.port, h.URL())
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r := h.request("GET", "/", "", h.token(access.Token{}))
	r.URL.Scheme, r.Host = "https", "lineage.example:"+h.port
	got, err := (&http.Client{Transport: transport}).Do(r)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	require.Equal(t, 200, got.StatusCode)
	require.Equal(t, 2, got.ProtoMajor)
	require.True(t, h.cookie("x", 1).Secure)
}
