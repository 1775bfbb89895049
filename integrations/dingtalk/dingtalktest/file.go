package dingtalktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// maxFailed is how many failed events one call shows.
const maxFailed = 200

// failedEvent is an event that was given up.
type failedEvent struct {
	tag, data string
	at        time.Time
}

// AddFile makes a download code good for a file.
func (a *App) AddFile(code string, content []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.files[code] = content
}

func (a *App) file(code string) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, ok := a.files[code]
	return b, ok
}

// serveDownload changes a download code into a link.
func (g *Gateway) serveDownload(w http.ResponseWriter, r *http.Request) {
	a := g.authorized(w, r)
	if a == nil {
		return
	}
	var body struct {
		Code      string `json:"downloadCode"`
		RobotCode string `json:"robotCode"`
	}
	_ = readJSON(r, &body) // what cannot be read has no codes
	_, ok := a.file(body.Code)
	switch {
	case body.RobotCode == "":
		answer(w, http.StatusBadRequest, apiError("invalidParameter.robotCode.empty"))
	case body.RobotCode != a.cred.RobotCode:
		answer(w, http.StatusBadRequest, apiError("invalidParameter.robotCode.auth"))
	case !ok:
		answer(w, http.StatusBadRequest, apiError("invalidParameter.robotCode.downloadCode"))
	default:
		link := fmt.Sprintf("%s/files/%s?app=%d", g.URL(), url.PathEscape(body.Code), a.index)
		answer(w, http.StatusOK, fmt.Sprintf(`{"downloadUrl":%s}`, quote(link)))
	}
}

// serveFile is where such links lead. They need no token, as on the platform.
func (g *Gateway) serveFile(w http.ResponseWriter, r *http.Request) {
	index, err := strconv.Atoi(r.URL.Query().Get("app"))
	a := g.appAt(index)
	if err != nil || a == nil {
		http.NotFound(w, r)
		return
	}
	b, ok := a.file(r.PathValue("code"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(b)
}

// serveFailed lists the events that were given up, and forgets those that the
// call before has listed.
func (g *Gateway) serveFailed(w http.ResponseWriter, r *http.Request) {
	a := g.tokenOwner(r.URL.Query().Get("access_token"))
	if a == nil {
		answer(w, http.StatusOK, errcode(40014, "test: access_token is not valid"))
		return
	}
	list, more := a.takeFailed()
	body, err := marshal(map[string]any{
		"errcode": 0, "errmsg": "ok", "has_more": more, "failed_list": list,
	})
	if err != nil {
		answer(w, http.StatusOK, errcode(-1, "test: events cannot be encoded"))
		return
	}
	answer(w, http.StatusOK, string(body))
}

// takeFailed moves the list on by one call.
func (a *App) takeFailed() (list []map[string]any, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = a.failed[a.returned:]
	a.returned = min(len(a.failed), maxFailed)
	list = []map[string]any{}
	for _, f := range a.failed[:a.returned] {
		entry := map[string]any{"event_time": f.at.UnixMilli(), "call_back_tag": f.tag}
		if json.Valid([]byte(f.data)) {
			maps.Copy(entry, map[string]any{f.tag: json.RawMessage(f.data)})
		}
		list = append(list, entry)
	}
	return list, len(a.failed) > a.returned
}
