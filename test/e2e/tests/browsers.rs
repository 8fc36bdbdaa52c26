//! Pages of other sites, in a real browser: none of them changes or reads anything of a cluster.

use serde_json::json;
use tepui_e2e::{Browser, Cluster, Scheduler, Web};
use tepui_facilities::{Facility, available};

/// A name that resolves to loopback in the tests' browser only.
const FOREIGN: &str = "evil.example";

#[test]
fn cross_site_requests_are_rejected() {
    if !available(&[Facility::Program("chromium")]) {
        return;
    }
    let cluster = Cluster::start();
    let (master, http) = (&cluster.master.address, cluster.http());
    let mut scheduler = Scheduler::subscribe(&http, Scheduler::info("dev"));
    let id = scheduler.framework_id.clone();
    let form = format!(
        "<body onload='document.forms[0].submit()'><form method=post action='http://{master}/teardown'>\
         <input name=frameworkId value='{id}'></form>"
    );
    let quota = r#"{"role":"dev","guarantee":[{"name":"cpus","type":"SCALAR","scalar":{"value":1}}]}"#;
    // The page cannot read the answers, but waits for their arrival.
    let fetches = format!(
        "<script>function leak() {{ document.title = ['lea', 'ked'].join(''); }}</script>\
         <script src='http://{master}/state?jsonp=leak'></script>\
         <script>\
           const send = (path, method, body) => fetch('http://{master}' + path, {{method, mode: 'no-cors', body}});\
           Promise.allSettled([\
             send('/quota', 'POST', new Blob(['{quota}'], {{type: 'text/plain'}})),\
             send('/quota', 'POST', new Blob(['{quota}'])),\
             send('/teardown', 'POST', new URLSearchParams({{frameworkId: '{id}'}})),\
             send('/logging/toggle?level=3&duration=1hrs', 'GET'),\
           ]).then((all) => {{ document.body.append(all.map((one) => one.status).join()); }});\
         </script><body>"
    );
    let foreign = Web::serve(&[("/form", 200, form.as_bytes()), ("/fetch", 200, fetches.as_bytes())]);
    let profile = cluster.folder().join("browser");
    let resolver = format!("--host-resolver-rules=MAP {FOREIGN} 127.0.0.1");
    let mut browser = Browser::start(&profile, &[&resolver]);
    let site = format!("http://{FOREIGN}:{}", foreign.port);
    let is_rejected = |shown: &str| shown.contains("Requests of other sites' pages are rejected");
    browser.visit(&format!("{site}/form"), is_rejected);
    let are_sent = |shown: &str| shown.contains("fulfilled,fulfilled,fulfilled,fulfilled");
    let shown = browser.visit(&format!("{site}/fetch"), are_sent);
    assert!(!shown.contains("leaked"), "{shown}");
    // Another port of the same host is another site's page too.
    browser.visit(&foreign.url("/form"), is_rejected);
    // A name that was made to resolve to the master.
    let port = master.rsplit(':').next().expect("a port");
    let is_unknown = |shown: &str| shown.contains("is not a name of this program");
    browser.visit(&format!("http://{FOREIGN}:{port}/state"), is_unknown);

    assert_eq!(http.get("/quota").json(), Some(json!({})), "no quota was set");
    assert_eq!(http.get("/logging/toggle").text(), "0\n");
    scheduler.offer();
    // The same requests succeed for an authorized client.
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let answer = http.send("POST", "/teardown", &headers, format!("frameworkId={id}").as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn unknown_host_headers_are_rejected() {
    let cluster = Cluster::with(
        &["--hostname=m1.example", "--allowed_hosts=proxy.example,.corp.example"],
        &["--hostname=a1.example"],
    );
    let (master, agent) = (cluster.http(), cluster.agent_http());
    for (http, head, status) in [
        (&master, "GET /health HTTP/1.1\r\nHost: m1.example:5050\r\n", "200"),
        (&master, "GET /health HTTP/1.1\r\nHost: proxy.example\r\n", "200"),
        (&master, "GET /health HTTP/1.1\r\nHost: x.corp.example\r\n", "200"),
        (&master, "GET /health HTTP/1.1\r\nHost: a1.example\r\n", "400"),
        (&master, "GET /health HTTP/1.1\r\n", "400"),
        (&master, "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", "400"),
        (&master, "GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n", "400"),
        (&agent, "GET /health HTTP/1.1\r\nHost: a1.example\r\n", "200"),
        (&agent, "GET /health HTTP/1.1\r\nHost: m1.example\r\n", "400"),
        (&agent, "POST /api/v1 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n", "403"),
    ] {
        let mut stream =
            http.raw(format!("{head}Connection: close\r\n\r\n").as_bytes()).expect("a connection");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("an answer");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
    }
    assert_eq!(master.get("/state?jsonp=f").status, 403);
}
