//! Parsers of flag values: durations, sizes, rates, maps. Each error states the valid form.

use std::collections::BTreeMap;
use std::time::Duration;

/// A duration as v1 writes it: `10secs`, `1.5mins`, `500ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    tepui_client::duration::parse(text).map_err(|error| error.to_string())
}

/// A number of bytes as v1 writes it: `2GB`, `512MB`, `4KB`, `100B`; 1 KB is 1024 bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "B" => 1,
        "KB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1u64 << 40,
        _ => {
            return Err(format!("{text:?} is not a size; write a whole number and B, KB, MB, GB or TB: 2GB"));
        }
    };
    let number: u64 =
        number.parse().map_err(|_| format!("{text:?} does not start with a whole number: 2GB"))?;
    number.checked_mul(unit).ok_or_else(|| format!("{text:?} is too large"))
}

/// `<number>/<duration>`: how often something may happen.
pub fn rate(text: &str) -> Result<(u32, Duration), String> {
    let (number, per) =
        text.split_once('/').ok_or_else(|| format!("{text:?} is not a rate; write 1/20mins"))?;
    let number = number.parse().map_err(|_| format!("{number:?} is not a whole number; write 1/20mins"))?;
    Ok((number, duration(per)?))
}

/// `80%`, as a part of 1.
pub fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    match number {
        Some(number) if (0.0..=100.0).contains(&number) => Ok(number / 100.0),
        Some(_) | None => Err(format!("{text:?} is not from 0% to 100%")),
    }
}

/// `role=weight,role=weight`.
pub fn weights(text: &str) -> Result<BTreeMap<String, f64>, String> {
    let mut weights = BTreeMap::new();
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let (role, weight) = item.split_once('=').ok_or_else(|| format!("{item:?} is not role=weight"))?;
        let number: f64 =
            weight.trim().parse().map_err(|_| format!("the weight {weight:?} is not a number"))?;
        if !number.is_finite() || number <= 0.0 {
            return Err(format!("the weight {weight:?} of role {role:?} must be positive"));
        }
        if weights.insert(role.trim().to_string(), number).is_some() {
            return Err(format!("role {:?} is named twice", role.trim()));
        }
    }
    Ok(weights)
}

/// How much of which resources.
#[derive(Clone, Debug, PartialEq)]
pub struct Amounts(pub BTreeMap<String, f64>);

impl std::fmt::Display for Amounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let amounts: Vec<String> = self.0.iter().map(|(name, amount)| format!("{name}:{amount}")).collect();
        f.write_str(&amounts.join(" "))
    }
}

/// `cpus:4,mem:1024`; `;` does as well as `,`.
pub fn amounts(text: &str) -> Result<Amounts, String> {
    let mut amounts = BTreeMap::new();
    for item in text.split([',', ';']).map(str::trim).filter(|item| !item.is_empty()) {
        let (name, amount) = item
            .split_once(':')
            .ok_or_else(|| format!("{item:?} is not an amount; write cpus:4,mem:1024"))?;
        let number: f64 = amount
            .parse()
            .map_err(|_| format!("{amount:?} of {name} is not a number; write cpus:4,mem:1024"))?;
        if !number.is_finite() || number < 0.0 {
            return Err(format!("{amount:?} of {name} is not an amount"));
        }
        if amounts.insert(name.to_string(), number).is_some() {
            return Err(format!("{name} is named twice"));
        }
    }
    if amounts.is_empty() {
        Err("no resources; write cpus:4,mem:1024".to_string())
    } else {
        Ok(Amounts(amounts))
    }
}

/// A set of capabilities, as bits by the kernel's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(pub u64);

/// `{"capabilities":["NET_RAW","MKNOD"]}`.
pub fn capabilities(text: &str) -> Result<Capabilities, String> {
    tepui_container::parse_capabilities(text).map(Capabilities).map_err(|fault| fault.to_string())
}

/// Devices with their access rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices(pub Vec<tepui_container::AllowedDevice>);

/// `{"allowed_devices":[{"device":{"path":"/dev/fuse"},"access":{"read":true,"write":true}}]}`.
pub fn devices(text: &str) -> Result<Devices, String> {
    tepui_container::parse_devices(text).map(Devices).map_err(|fault| fault.to_string())
}

/// Ports, from and to, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRanges(pub Vec<(u16, u16)>);

/// `[31000-32000,33000-33010]`.
pub fn port_ranges(text: &str) -> Result<PortRanges, String> {
    let wrong = || format!("{text:?} are not ranges of ports; write [31000-32000]");
    let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
    let range = |item: &str| {
        let (from, to) = item.split_once('-')?;
        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from <= to).then_some((from, to))
    };
    inner.split(',').map(range).collect::<Option<Vec<_>>>().map(PortRanges).ok_or_else(wrong)
}

/// A comma list without empty items.
pub fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_string).collect()
}

/// A JSON object of strings, as `--executor_environment_variables` takes it.
pub fn string_map(text: &str) -> Result<BTreeMap<String, String>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object of strings: {error}"))
}

/// `true` or `false`, also `1` and `0`.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rates_and_weights_are_parsed() {
        assert_eq!(bytes("2GB"), Ok(2 << 30));
        assert_eq!(bytes("7B"), Ok(7));
        assert!(bytes("2 GB").is_err() && bytes("GB").is_err() && bytes("99999999999TB").is_err());
        assert_eq!(rate("1/20mins"), Ok((1, Duration::from_secs(1200))));
        assert!(rate("20mins").is_err());
        assert_eq!((percentage("0%"), percentage("12.5%")), (Ok(0.0), Ok(0.125)));
        assert!(["50", "101%", "-1%", "NaN%", "%"].iter().all(|text| percentage(text).is_err()));
        assert_eq!(weights("a=2,b/c=0.5").unwrap().len(), 2);
        assert_eq!(port_ranges("[1-2, 5-5]"), Ok(PortRanges(vec![(1, 2), (5, 5)])));
        assert!(["1-2", "[]", "[2-1]", "[1-70000]", "[1]"].iter().all(|text| port_ranges(text).is_err()));
        assert_eq!(capabilities(r#"{"capabilities":["CHOWN","KILL"]}"#), Ok(Capabilities(0b10_0001)));
        assert!(capabilities(r#"{"capabilities":["FLY"]}"#).is_err() && capabilities("CHOWN").is_err());
        let device = |path: &str, access: &str| {
            devices(&format!(
                r#"{{"allowed_devices":[{{"device":{{"path":"{path}"}},"access":{{{access}}}}}]}}"#
            ))
        };
        assert_eq!(device("/dev/null", r#""read":true"#).unwrap().0.len(), 1);
        assert!(device("/dev/null", "").is_err() && device("/etc", r#""read":true"#).is_err());
        assert!(device("/dev/missing", r#""read":true"#).is_err() && devices("{}").is_err());
        assert!(["a=0", "a=NaN", "a", "a=1,a=2", "a=1, a =1"].iter().all(|text| weights(text).is_err()));
    }
}
