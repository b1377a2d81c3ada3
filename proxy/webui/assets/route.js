// The URL's fragment contains the view and its settings, for example #/clients?q=billing&sort=last.

export function currentRoute() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path || "overview", params: new URLSearchParams(query) };
}

// Returns a link without the parameters that are null. #/client without `id` is the page of clients without a client
// id.
export function href(view, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return `#/${view}${query && `?${query}`}`;
}

// Changes settings of the current view, without a new entry in the browser's history.
export function setParams(changes) {
  const { view, params } = currentRoute();
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === null) params.delete(name);
    else params.set(name, value);
  }
  history.replaceState(null, "", href(view, Object.fromEntries(params)));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}
