//! The names of months, currencies and units.

use crate::language::Language;

/// Small words that stand for signs. Empty where the engine must know.
pub(super) struct SignWords {
    /// Between a day and a time.
    pub(super) at: &'static str,
    pub(super) to: &'static str,
    pub(super) and: &'static str,
    pub(super) at_sign: &'static str,
    pub(super) about: &'static str,
    pub(super) number: &'static str,
    pub(super) times: &'static str,
    pub(super) per_cent: &'static str,
    pub(super) thousand: &'static str,
    pub(super) million: &'static str,
    pub(super) billion: &'static str,
}

pub(super) fn words(language: Language) -> &'static SignWords {
    match language {
        Language::English => &ENGLISH,
        Language::German => &GERMAN,
        Language::French => &FRENCH,
        Language::Spanish => &SPANISH,
        Language::Other => &OTHER,
    }
}

const ENGLISH: SignWords = SignWords {
    at: "at",
    to: "to",
    and: "and",
    at_sign: "at",
    about: "about",
    number: "number",
    times: "times",
    per_cent: "per cent",
    thousand: "thousand",
    million: "million",
    billion: "billion",
};

const GERMAN: SignWords = SignWords {
    at: "um",
    to: "bis",
    and: "und",
    at_sign: "ät",
    about: "etwa",
    number: "Nummer",
    times: "mal",
    per_cent: "Prozent",
    thousand: "tausend",
    million: "Millionen",
    billion: "Milliarden",
};

const FRENCH: SignWords = SignWords {
    at: "à",
    to: "à",
    and: "et",
    at_sign: "arobase",
    about: "environ",
    number: "numéro",
    times: "fois",
    per_cent: "pour cent",
    thousand: "mille",
    million: "millions de",
    billion: "milliards de",
};

const SPANISH: SignWords = SignWords {
    at: "a las",
    to: "a",
    and: "y",
    at_sign: "arroba",
    about: "unos",
    number: "número",
    times: "por",
    per_cent: "por ciento",
    thousand: "mil",
    million: "millones de",
    billion: "mil millones de",
};

const OTHER: SignWords = SignWords {
    at: "",
    to: "",
    and: "",
    at_sign: "",
    about: "",
    number: "",
    times: "",
    per_cent: "",
    thousand: "k",
    million: "M",
    billion: "bn",
};

/// The months of each language.
pub(super) const MONTHS: &[(Language, [&str; 12])] = &[
    (
        Language::English,
        [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ],
    ),
    (
        Language::German,
        [
            "Januar",
            "Februar",
            "März",
            "April",
            "Mai",
            "Juni",
            "Juli",
            "August",
            "September",
            "Oktober",
            "November",
            "Dezember",
        ],
    ),
    (
        Language::French,
        [
            "janvier",
            "février",
            "mars",
            "avril",
            "mai",
            "juin",
            "juillet",
            "août",
            "septembre",
            "octobre",
            "novembre",
            "décembre",
        ],
    ),
    (
        Language::Spanish,
        [
            "enero",
            "febrero",
            "marzo",
            "abril",
            "mayo",
            "junio",
            "julio",
            "agosto",
            "septiembre",
            "octubre",
            "noviembre",
            "diciembre",
        ],
    ),
];

/// What money is called.
pub(super) struct CurrencyNames {
    pub(super) one: &'static str,
    pub(super) many: &'static str,
    pub(super) cents: &'static str,
}

pub(super) fn currency(sign: &str, language: Language) -> Option<CurrencyNames> {
    let (one, many, cents) = match (sign, language) {
        (_, Language::Other) => return None,
        ("$", Language::English) => ("dollar", "dollars", "cents"),
        ("$", Language::German) => ("Dollar", "Dollar", "Cent"),
        ("$", Language::French) => ("dollar", "dollars", "cents"),
        ("$", Language::Spanish) => ("dólar", "dólares", "centavos"),
        ("€", Language::German) => ("Euro", "Euro", "Cent"),
        ("€", _) => ("euro", "euros", "cents"),
        ("£", Language::English) => ("pound", "pounds", "pence"),
        ("£", Language::German) => ("Pfund", "Pfund", "Pence"),
        ("£", Language::French) => ("livre", "livres", "pence"),
        ("£", Language::Spanish) => ("libra", "libras", "peniques"),
        ("¥", _) => ("yen", "yen", "sen"),
        _ => return None,
    };
    Some(CurrencyNames { one, many, cents })
}

/// The English name of a unit.
pub(super) fn unit(sign: &str, is_one: bool) -> Option<String> {
    let name = match sign {
        "km/h" => return Some(if is_one { "kilometre per hour" } else { "kilometres per hour" }.to_owned()),
        "m/s" => return Some(if is_one { "metre per second" } else { "metres per second" }.to_owned()),
        "mph" => return Some(if is_one { "mile per hour" } else { "miles per hour" }.to_owned()),
        "°C" => return Some(if is_one { "degree Celsius" } else { "degrees Celsius" }.to_owned()),
        "°F" => return Some(if is_one { "degree Fahrenheit" } else { "degrees Fahrenheit" }.to_owned()),
        "ft" => return Some(if is_one { "foot" } else { "feet" }.to_owned()),
        "Hz" | "kHz" | "MHz" | "GHz" => {
            let prefix = sign.trim_end_matches("Hz");
            let prefix =
                [("k", "kilo"), ("M", "mega"), ("G", "giga")].into_iter().find(|(short, _)| *short == prefix);
            return Some(format!("{}hertz", prefix.map_or("", |(_, long)| long)));
        }
        "km²" => "square kilometre",
        "m²" => "square metre",
        "m³" => "cubic metre",
        "km" => "kilometre",
        "cm" => "centimetre",
        "mm" => "millimetre",
        "m" => "metre",
        "kg" => "kilogram",
        "mg" => "milligram",
        "g" => "gram",
        "t" => "tonne",
        "lb" | "lbs" => "pound",
        "kB" => "kilobyte",
        "MB" => "megabyte",
        "GB" => "gigabyte",
        "TB" => "terabyte",
        "kWh" => "kilowatt hour",
        "kW" => "kilowatt",
        "MW" => "megawatt",
        "ms" => "millisecond",
        "s" => "second",
        "min" => "minute",
        "h" => "hour",
        "l" => "litre",
        "ml" => "millilitre",
        "°" => "degree",
        _ => return None,
    };
    Some(if is_one { name.to_owned() } else { format!("{name}s") })
}
